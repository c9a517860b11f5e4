"""What a run does at each stage: with each command, and with each event.

Both tables are written by hand and not derived from the lifecycle: a cell that changes there shows
here. What an older version of the lifecycle allowed must stay allowed, so cells are only added.
"""

# A dot is WrongStage, a word in capitals another refusal; each other word is what is recorded.
COMMANDS_AT_STAGES = """
stage                resume  resolve  prepare  begin   take    create  refuse  claim   start    stop    end   announce  ack      archive  undo    fail    told    untold park

requested            Resumed Resolved .        .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .      .
scripts-resolved     Resumed .        Prepared .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .      .
 prepared            Resumed .        Prepared Begun   .       Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .      .
 begun               Resumed .        Prepared nothing Taken   .       Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .      .
 begun-elsewhere     Resumed .        Prepared Begun   .       .       Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .      .
 taken               Resumed .        Prepared .       nothing Created Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .      .
overridden           Resumed .        Prepared .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .      .
 prepared-overridden Resumed .        Prepared Begun   .       Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .      .
 begun-overridden    Resumed .        Prepared nothing Taken   .       Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .      .
session-created      .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       .       .      .
queued               .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .      .
 claimed             .       .        .        .       .       .       .       LOST    Started  Stop    Ended .         NO-INBOX .        .       .       .       .      .
 claimed-stopping    .       .        .        .       .       .       .       LOST    STOPPING nothing Ended .         NO-INBOX .        .       .       .       .      .
started              .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .      .
 started-stopping    .       .        .        .       .       .       .       .       STOPPING nothing Ended .         NO-INBOX .        .       .       .       .      .
ended                .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .      .
 ended-pending       .       .        .        .       .       .       .       .       .        nothing .     NOT-YET   NO-INBOX .        .       .       .       .      .
 ended-settled       .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .      .
announced            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .      .
 announced-silently  .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX Archived .       .       .       .      .
 acknowledged        .       .        .        .       .       .       .       .       .        nothing .     .         nothing  Archived .       .       .       .      .
archived             .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .      .
refused              .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        .       .       .       .      .
 refused-told        .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .      .
 refused-undoing     .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        Undone  Failed  .       .      .
 refused-trying      .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        Undone  nothing .       .      .
 refused-undone      .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        nothing nothing .       .      .
 queued-with-steps   .       .        .        .       nothing .       .       Claimed .        Ended   .     .         NO-INBOX .        NOT-YET NOT-YET .       .      .
 ended-with-steps    .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        NOT-YET NOT-YET .       .      .
 announced-undoing   .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived Undone  Failed  .       .      .
 archived-undoing    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        Undone  Failed  .       .      .
 queued-hooked       .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       Told    Untold Parked
 queued-trying       .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       Told    nothing nothing
 queued-told         .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       nothing nothing nothing
 created-hooked      .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       NOT-YET NOT-YET NOT-YET
 started-hooked      .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       Told    Untold Parked
 ended-hooked        .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       Told    Untold Parked
 announced-hooked    .      .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .                  Told    Untold Parked
 archived-hooked     .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       Told    Untold Parked
"""  # noqa: E501

# Every cell in which an event may stand, and the stage that follows; all others are corrupt.
EVENTS_AT_STAGES = """
unborn            SpawnRequested            requested
requested         PreparationResumed        requested
requested         ScriptsResolved           scripts-resolved
requested         SpawnRefused              refused
scripts-resolved  PreparationResumed        scripts-resolved
scripts-resolved  AgentOverridden           overridden
scripts-resolved  PreparationStarted        scripts-resolved
scripts-resolved  StepBegun                 scripts-resolved
scripts-resolved  StepTaken                 scripts-resolved
scripts-resolved  SessionCreated            session-created
scripts-resolved  SpawnRefused              refused
overridden        PreparationResumed        overridden
overridden        PreparationStarted        overridden
overridden        StepBegun                 overridden
overridden        StepTaken                 overridden
overridden        SessionCreated            session-created
overridden        SpawnRefused              refused
session-created   HookTold                  session-created
session-created   HookFailed                session-created
session-created   HookParked                session-created
session-created   RunQueued                 queued
session-created   RunEnded                  ended
queued            HookTold                  queued
queued            HookFailed                queued
queued            HookParked                queued
queued            RunClaimed                queued
queued            StopRequested             queued
queued            RunStarted                started
queued            RunEnded                  ended
started           HookTold                  started
started           HookFailed                started
started           HookParked                started
started           StopRequested             started
started           RunEnded                  ended
ended             HookTold                  ended
ended             HookFailed                ended
ended             HookParked                ended
ended             DescendantsSettled        ended
ended             StepUndone                ended
ended             StepUndoFailed            ended
ended             RunAnnounced              announced
announced         HookTold                  announced
announced         HookFailed                announced
announced         HookParked                announced
announced         AnnouncementAcknowledged  announced
announced         StepUndone                announced
announced         StepUndoFailed            announced
announced         RunArchived               archived
archived          HookTold                  archived
archived          HookFailed                archived
archived          HookParked                archived
archived          AnnouncementAcknowledged  archived
archived          StepUndone                archived
archived          StepUndoFailed            archived
refused           AnnouncementAcknowledged  refused
refused           StepUndone                refused
refused           StepUndoFailed            refused
"""
