// What runs wait for, in words.

import type { DependencyView, WaitView } from '../api/shapes'
import { counted, visible } from '../parts/text'

/** `3 runs wait for a slot in lane subagent, depth 1` */
export function waitText({ reason, lane, depth, runs }: Pick<WaitView, 'reason' | 'lane' | 'depth' | 'runs'>): string {
  const wait = `${counted(runs, 'run')} ${runs === 1 ? 'waits' : 'wait'}`
  const where = lane === null ? '' : ` ${visible(lane)}${depth === null ? '' : `, depth ${depth}`}`
  if (reason === 'runs') return `${wait} for other runs to end`
  if (reason === 'slot') return `${wait} for a slot: lane${where} is full`
  return `${wait} to be claimed by a server or worker${where === '' ? '' : `, in lane${where}`}`
}

/** `waits for plan, tides`: the dependencies that are not met yet; empty if there are none. */
export function dependencyText(dependencies: Pick<DependencyView, 'name' | 'state'>[]): string {
  const open = dependencies.filter((dependency) => dependency.state === 'waiting').map((dependency) => visible(dependency.name))
  return open.length === 0 ? '' : `waits for ${open.join(', ')}`
}
