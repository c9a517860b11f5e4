"""Reaction of a run at each stage to each command and each event.

Both tables are written by hand, not derived from the lifecycle, so that a changed cell shows here.
Cells are only added: what an older lifecycle allowed must stay allowed.
"""

# A dot is WrongStage, a word in capitals another refusal; other words are recorded events.
COMMANDS_AT_STAGES = """
stage                resume  resolve  prepare  begin   take    create  refuse  claim   start    stop    end   announce  ack      archive  undo    fail    told    untold  park    close   settle

requested            Resumed Resolved .        .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
scripts-resolved     Resumed .        Prepared .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 prepared            Resumed .        Prepared Begun   .       Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 begun               Resumed .        Prepared nothing Taken   .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 begun-elsewhere     Resumed .        Prepared Begun   .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 taken               Resumed .        Prepared .       nothing Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
overridden           Resumed .        Prepared .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 prepared-overridden Resumed .        Prepared Begun   .       Created Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 begun-overridden    Resumed .        Prepared nothing Taken   .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
session-created      .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       .       .       .       Closing nothing
queued               .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing nothing
 claimed             .       .        .        .       .       .       .       LOST    Started  Stop    Ended .         NO-INBOX .        .       .       .       .       .       Closing nothing
 claimed-stopping    .       .        .        .       .       .       .       LOST    STOPPING nothing Ended .         NO-INBOX .        .       .       .       .       .       Closing nothing
started              .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .       .       Closing nothing
 started-stopping    .       .        .        .       .       .       .       .       STOPPING nothing Ended .         NO-INBOX .        .       .       .       .       .       Closing nothing
ended                .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       Closing nothing
 ended-pending       .       .        .        .       .       .       .       .       .        nothing .     NOT-YET   NO-INBOX .        .       .       .       .       .       Closing nothing
 ended-settled       .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       Closing nothing
announced            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       Closing nothing
 announced-silently  .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX Archived .       .       .       .       .       Closing nothing
 acknowledged        .       .        .        .       .       .       .       .       .        nothing .     .         nothing  Archived .       .       .       .       .       Closing nothing
archived             .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       nothing nothing
refused              .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        .       .       .       .       .       nothing nothing
 refused-told        .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       nothing nothing
 refused-undoing     .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        Tried   Tried   .       .       .       nothing nothing
 refused-trying      .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        Tried   nothing .       .       .       nothing nothing
 refused-undone      .       .        .        .       .       .       .       .       .        nothing .     .         NO-INBOX .        nothing nothing .       .       .       nothing nothing
 queued-with-steps   .       .        .        .       nothing .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing nothing
 ended-with-steps    .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       Closing nothing
 announced-undoing   .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived Tried   Tried   .       .       .       Closing nothing
 archived-undoing    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        Tried   Tried   .       .       .       nothing nothing
 queued-hooked       .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       Tried   Tried   Parked  Closing nothing
 queued-trying       .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       Tried   nothing Parked  Closing nothing
 queued-told         .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       nothing nothing nothing Closing nothing
 created-hooked      .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       NOT-YET NOT-YET NOT-YET Closing nothing
 started-hooked      .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       Tried   Tried   Parked  Closing nothing
 ended-hooked        .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       Tried   Tried   Parked  Closing nothing
 announced-hooked    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       Tried   Tried   Parked  Closing nothing
 archived-hooked     .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       Tried   Tried   Parked  nothing nothing
 sent                Resumed Resolved .        .       .       .       Refused .       .        Refused .     .         NO-INBOX .        .       .       .       .       .       .       nothing
 planned             .       .        .        .       .       .       .       .       .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing nothing
 waiting             .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing nothing
 running             .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .       .       Closing nothing
 finished            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       Closing nothing
 continued           .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       AGAIN   nothing
 followed            .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       nothing nothing
 created-closing     .       .        .        .       .       .       .       .       .        Ended   Ended .         NO-INBOX .        .       .       .       .       .       nothing nothing
 queued-closing      .       .        .        .       .       .       .       Claimed .        Ended   .     .         NO-INBOX .        .       .       .       .       .       nothing nothing
 started-closing     .       .        .        .       .       .       .       .       .        Stop    Ended .         NO-INBOX .        .       .       .       .       .       nothing nothing
 ended-closing       .       .        .        .       .       .       .       .       .        nothing .     Announced NO-INBOX .        .       .       .       .       .       nothing nothing
 announced-closing   .       .        .        .       .       .       .       .       .        nothing .     .         Acked    Archived .       .       .       .       .       nothing nothing
 archived-closing    .       .        .        .       .       .       .       .       .        nothing .     .         Acked    .        .       .       .       .       .       nothing nothing
 awaiting            .       .        .        .       .       .       .       .       .        Ended   .     .         NO-INBOX .        .       .       .       .       .       Closing Queued
"""  # noqa: E501

# Every cell with an allowed event, and the next stage; all others are corrupt.
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
session-created   ArchiveScheduled          session-created
session-created   RunWaits                  session-created
session-created   DependencyMet             session-created
session-created   RunQueued                 queued
session-created   RunEnded                  ended
queued            ArchiveScheduled          queued
queued            RunClaimed                queued
queued            StopRequested             queued
queued            RunStarted                started
queued            RunEnded                  ended
started           ArchiveScheduled          started
started           StopRequested             started
started           RunEnded                  ended
ended             ArchiveScheduled          ended
ended             DescendantsSettled        ended
ended             RunAnnounced              announced
announced         ArchiveScheduled          announced
announced         RunContinued              announced
announced         AnnouncementAcknowledged  announced
announced         RunArchived               archived
archived          AnnouncementAcknowledged  archived
session-created   MessageQueued             session-created
session-created   MessagesDropped           session-created
queued            MessageQueued             queued
queued            MessagesDropped           queued
started           MessageQueued             started
started           MessagesDropped           started
ended             MessageQueued             ended
ended             MessagesDropped           ended
announced         MessageQueued             announced
announced         MessagesDropped           announced
started           YieldRequested            started
ended             ChildrenReported          ended
ended             ContinuationFailed        ended
ended             RunContinued              ended
ended             StopRequested             ended
announced         ContinuationFailed        announced
refused           AnnouncementAcknowledged  refused
session-created   EffectAttempted           session-created
session-created   EffectParked              session-created
session-created   EffectRedriven            session-created
queued            EffectAttempted           queued
queued            EffectParked              queued
queued            EffectRedriven            queued
started           EffectAttempted           started
started           EffectParked              started
started           EffectRedriven            started
ended             EffectAttempted           ended
ended             EffectParked              ended
ended             EffectRedriven            ended
announced         EffectAttempted           announced
announced         EffectParked              announced
announced         EffectRedriven            announced
archived          EffectAttempted           archived
archived          EffectParked              archived
archived          EffectRedriven            archived
refused           EffectAttempted           refused
refused           EffectParked              refused
refused           EffectRedriven            refused
"""
