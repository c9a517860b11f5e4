"""What a run does at each stage: with each command, and with each event.

Both tables are written by hand and not derived from the lifecycle: a cell that changes there shows
here. What an older version of the lifecycle allowed must stay allowed, so cells are only added.
"""

# A dot is WrongStage, a word in capitals another refusal; each other word is what is recorded.
COMMANDS_AT_STAGES = """
stage                resume  resolve  prepare  begin   take    create  refuse  claim   start    stop    end   announce  ack      archive  undo    fail    told    untold  park    close

requested            Resumed Resolved .        .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .
scripts-resolved     Resumed .        Prepared .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .
 prepared            Resumed .        Prepared Begun   .       Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .
 begun               Resumed .        Prepared nothing Taken   .       Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .       .       .
 begun-elsewhere     Resumed .        Prepared Begun   .       .       Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .       .       .
 taken               Resumed .        Prepared .       nothing Created Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .       .       .
overridden           Resumed .        Prepared .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .
 prepared-overridden Resumed .        Prepared Begun   .       Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .
 begun-overridden    Resumed .        Prepared nothing Taken   .       Refused .       .        Refused .     .         NO-INBOX .        NOT-YET NOT-YET .       .       .       .
session-created      .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       .       .       .       Closing
queued               .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing
 claimed             .       .        .        .       .       .       .       LOST    Started  Stop    Ended .         NO-INBOX .        .       .       .       .       .       Closing
 claimed-stopping    .       .        .        .       .       .       .       LOST    STOPPING nothing Ended .         NO-INBOX .        .       .       .       .       .       Closing
started              .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .       .       Closing
 started-stopping    .       .        .        .       .       .       .       .       STOPPING nothing Ended .         NO-INBOX .        .       .       .       .       .       Closing
ended                .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       Closing
 ended-pending       .       .        .        .       .       .       .       .       .        nothing .     NOT-YET   NO-INBOX .        .       .       .       .       .       Closing
 ended-settled       .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       Closing
announced            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       Closing
 announced-silently  .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX Archived .       .       .       .       .       Closing
 acknowledged        .       .        .        .       .       .       .       .       .        nothing .     .         nothing  Archived .       .       .       .       .       Closing
archived             .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       nothing
refused              .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        .       .       .       .       .       nothing
 refused-told        .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       nothing
 refused-undoing     .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        Undone  Failed  .       .       .       nothing
 refused-trying      .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        Undone  nothing .       .       .       nothing
 refused-undone      .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        nothing nothing .       .       .       nothing
 queued-with-steps   .       .        .        .       nothing .       .       Claimed .        Ended   .     .         NO-INBOX .        NOT-YET NOT-YET .       .       .       Closing
 ended-with-steps    .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        NOT-YET NOT-YET .       .       .       Closing
 announced-undoing   .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived Undone  Failed  .       .       .       Closing
 archived-undoing    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        Undone  Failed  .       .       .       nothing
 queued-hooked       .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       Told    Untold  Parked  Closing
 queued-trying       .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       Told    nothing nothing Closing
 queued-told         .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       nothing nothing nothing Closing
 created-hooked      .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       NOT-YET NOT-YET NOT-YET Closing
 started-hooked      .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       Told    Untold  Parked  Closing
 ended-hooked        .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       Told    Untold  Parked  Closing
 announced-hooked    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       Told    Untold  Parked  Closing
 archived-hooked     .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       Told    Untold  Parked  nothing
 sent                Resumed Resolved .        .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .
 planned             .       .        .        .       .       .       .       .       .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing
 waiting             .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing
 running             .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .       .       Closing
 finished            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       Closing
 continued           .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       AGAIN
 followed            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       nothing
 created-closing     .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       .       .       .       nothing
 queued-closing      .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       nothing
 started-closing     .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .       .       nothing
 ended-closing       .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       nothing
 announced-closing   .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       nothing
 archived-closing    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       nothing
"""  # noqa: E501

# Every cell in which an event may stand, and the stage that follows; all others are corrupt.
EVENTS_AT_STAGES = """
unborn            SpawnRequested            requested
unborn            MessageReceived           requested
requested         PreparationResumed        requested
requested         ScriptsResolved           scripts-resolved
requested         ContinuationPlanned       session-created
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
session-created   ArchiveScheduled          session-created
session-created   RunQueued                 queued
session-created   RunEnded                  ended
queued            HookTold                  queued
queued            HookFailed                queued
queued            HookParked                queued
queued            ArchiveScheduled          queued
queued            RunClaimed                queued
queued            StopRequested             queued
queued            RunStarted                started
queued            RunEnded                  ended
started           HookTold                  started
started           HookFailed                started
started           HookParked                started
started           ArchiveScheduled          started
started           StopRequested             started
started           RunEnded                  ended
ended             HookTold                  ended
ended             HookFailed                ended
ended             HookParked                ended
ended             ArchiveScheduled          ended
ended             DescendantsSettled        ended
ended             StepUndone                ended
ended             StepUndoFailed            ended
ended             RunAnnounced              announced
announced         HookTold                  announced
announced         HookFailed                announced
announced         HookParked                announced
announced         ArchiveScheduled          announced
announced         RunContinued              announced
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
