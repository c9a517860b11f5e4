// A tree of sessions as rows: a session, its runs, and below it those that it spawned, refused ones too.

import type { RefusedRunView, SessionTreeView, TreeNodeView, TreeRunView } from '../api/shapes'
import { nameOfSession } from '../parts/names'
import type { State } from '../parts/states'
import { count, counted } from '../parts/text'

export type TreeRun = TreeRunView | RefusedRunView

export interface TreeRow {
  key: string
  level: number
  /** The session; null for a refused run, which has none. */
  node: TreeNodeView | null
  /** The newest run of the session; null for a session that nobody spawned. */
  run: TreeRun | null
  /** All its runs, oldest first. */
  runs: TreeRun[]
  hasChildren: boolean
  isFolded: boolean
}

type Below = { level: number; position: number } & ({ node: TreeNodeView } | { refused: RefusedRunView })

/** Return the rows in the order of the tree, without those below a folded one. */
export function treeRows(tree: SessionTreeView, folded: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = []
  const left: Below[] = [{ node: tree.root, level: 0, position: 0 }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { level } = next
    if ('refused' in next) {
      const run = next.refused
      rows.push({ key: run.runId, level, node: null, run, runs: [run], hasChildren: false, isFolded: false })
      continue
    }
    const { node } = next
    const key = node.sessionId ?? node.runs[0]?.runId ?? String(rows.length)
    const isFolded = folded.has(key)
    const below: Below[] = [
      ...node.children.map((child) => ({ node: child, level: level + 1, position: createdAt(child.runs[0]) })),
      ...node.refused.map((run) => ({ refused: run, level: level + 1, position: createdAt(run) })),
    ]
    rows.push({
      key, level, node, isFolded,
      run: node.runs.at(-1) ?? null,
      runs: node.runs,
      hasChildren: below.length > 0 || node.childrenCut,
    })
    if (!isFolded) left.push(...below.sort((one, other) => one.position - other.position).reverse())
  }
  return rows
}

const createdAt = (run: Pick<TreeRunView, 'stages'> | undefined): number => run?.stages[0]?.position ?? 0

/** Return the name of a row for people: its label, else its task, else agent and session. */
export function nameOf({ node, run }: Pick<TreeRow, 'node' | 'run'>): string {
  const given = run?.label ?? run?.taskPreview
  if (given) return given
  if (!node?.sessionKey) return run === null ? '(unknown session)' : `${run.agentId ?? 'a run'} (no task)`
  return nameOfSession(node.sessionKey)
}

/** Return the number of runs of a tree by state. */
export function statusesOf(rows: TreeRow[]): Partial<Record<State, number>> {
  const found: Partial<Record<State, number>> = {}
  for (const { runs } of rows) for (const { status } of runs) found[status] = (found[status] ?? 0) + 1
  return found
}

/** States of runs that a stop ends. */
const STOPPABLE: readonly State[] = ['preparing', 'waiting', 'queued', 'running']

export interface Stoppable {
  runs: number
  /** `1 waiting, 2 running` */
  text: string
}

/** Return how many runs a stop ends, and in which states they are. */
export function stoppable(statuses: Partial<Record<State, number>>): Stoppable {
  const counts = STOPPABLE.flatMap((state) => (statuses[state] === undefined ? [] : [{ state, number: statuses[state] }]))
  return {
    runs: counts.reduce((sum, { number }) => sum + number, 0),
    text: counts.map(({ state, number }) => `${count(number)} ${state}`).join(', '),
  }
}

/** What a stop of a run ends, while the runs below it are not counted. */
export const STOPS_ALL = 'Stops the run and every run below it.'

/** Return what a stop of the first session's run ends: `Stops the run and 3 runs below it: 1 waiting, 2 running.` */
export function stopText(tree: SessionTreeView): string {
  const { runs, text } = stoppable(statusesOf(treeRows(tree, new Set()).slice(1)))
  if (runs === 0) return tree.cut ? STOPS_ALL : 'Stops the run. No run below it is active.'
  return `Stops the run and ${tree.cut ? 'at least ' : ''}${counted(runs, 'run')} below it: ${text}.`
}
