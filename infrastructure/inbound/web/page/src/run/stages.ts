// What goes on with a run while it stays at a stage.

import type { ReachedStageView, RunSummary } from '../api/shapes'

const ACTIVITIES: Record<ReachedStageView['stage'], string> = {
  requested: 'scripts',
  'scripts-resolved': 'steps',
  overridden: 'steps',
  'session-created': 'waiting',
  queued: 'queued',
  started: 'running',
  ended: 'announcing',
  announced: 'kept',
  archived: '',
  refused: '',
}

/** `dependsOn`: how many runs it depends on; without any a session waits for its place in a lane alone. */
export function activityAt(stage: ReachedStageView['stage'], dependsOn: number): string {
  return stage === 'session-created' && dependsOn === 0 ? 'being queued' : ACTIVITIES[stage]
}

/** Why the child of a run that has not started has got nothing. */
export function startOf(run: Pick<RunSummary, 'status' | 'endedAt'>, isLive: boolean): string {
  if (run.status === 'refused') return 'The run was refused: its child never started.'
  if (run.endedAt !== null) return 'The run ended before its child started.'
  return `The child had not started ${isLive ? 'yet' : 'at this moment'}.`
}
