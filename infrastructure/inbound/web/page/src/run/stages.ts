// The steps of a run, as its page names them: each ends where the next one begins.

import { announcedStep } from '../announcements/states'
import type { ReachedStageView, RunSummary } from '../api/shapes'
import { millisecondsBetween } from '../parts/text'

type Stage = ReachedStageView['stage']

export interface Step {
  /** `prepared`, or `preparing` while the run is at it. */
  name: string
  /** The state whose color the step has; null for a step that takes no time. */
  state: RunSummary['status'] | null
  /** When and at which position the step ended; where it began if the run is still at it. */
  at: string
  position: number
  /** How long it took; null if it takes no time, or if it is not known yet. */
  ms: number | null
}

interface Phase {
  done: string
  ongoing: string
  state: RunSummary['status']
}

const PREPARED: Phase = { done: 'prepared', ongoing: 'preparing', state: 'preparing' }
const WAITED: Phase = { done: 'waited', ongoing: 'waiting', state: 'waiting' }
const QUEUED: Phase = { done: 'queued', ongoing: 'queued', state: 'queued' }
const RAN: Phase = { done: 'ran', ongoing: 'running', state: 'running' }
const LAST: Stage[] = ['announced', 'archived']

/** Return the steps of a run in order. `now` is null if the clock of the moment is not known yet. */
export function stepsOf(run: Pick<RunSummary, 'status' | 'stages' | 'dependsOn' | 'announcement'>, now: number | null): Step[] {
  const reached = (stage: Stage): ReachedStageView | undefined => run.stages.find((one) => one.stage === stage)
  const first = run.stages[0]
  if (first === undefined) return []
  const [queued, started, ended, refused] = (['queued', 'started', 'ended', 'refused'] as const).map(reached)
  const waits = run.dependsOn.length > 0 ? reached('session-created') : undefined
  const beginnings: [ReachedStageView | undefined, Phase][] = [[first, PREPARED], [waits, WAITED], [queued, QUEUED], [started, RAN]]
  // A refused run was never prepared to the end: its one step takes no time.
  const phases = refused !== undefined ? [] : beginnings.flatMap(([from, phase]) => (from === undefined ? [] : [{ from, phase }]))
  const end = refused ?? ended
  const steps = phases.map(({ from, phase }, index): Step => {
    const to = phases[index + 1]?.from ?? end
    if (to === undefined) {
      const ms = now === null ? null : Math.max(0, now - Date.parse(from.at))
      return { name: phase.ongoing, state: phase.state, at: from.at, position: from.position, ms }
    }
    const state = phase === RAN ? run.status : phase.state
    return { name: phase.done, state, at: to.at, position: to.position, ms: millisecondsBetween(from.at, to.at) }
  })
  // How a run ended that never ran, or was refused, is a step of its own.
  if (end !== undefined && started === undefined) steps.push({ name: run.status, state: null, at: end.at, position: end.position, ms: null })
  for (const stage of LAST) {
    const one = reached(stage)
    if (one !== undefined) steps.push({ name: stage === 'announced' ? announcedStep(run.announcement.state) : stage, state: null, at: one.at, position: one.position, ms: null })
  }
  return steps
}

/** Return why the child of a run that has not started has no prompt, conversation or shared values. */
export function startOf(run: Pick<RunSummary, 'status' | 'endedAt'>, isLive: boolean): string {
  if (run.status === 'refused') return 'The run was refused: its child never started.'
  if (run.endedAt !== null) return 'The run ended before its child started.'
  return `The child had not started ${isLive ? 'yet' : 'at this moment'}.`
}
