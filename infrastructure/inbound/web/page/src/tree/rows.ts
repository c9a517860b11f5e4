// A tree of sessions as rows: a session, its runs, and below it those that it asked for, refused ones too.

import type { RefusedRunView, SessionTreeView, TreeNodeView, TreeRunView } from '../api/shapes'

export interface TreeRow {
  key: string
  level: number
  /** The session; null for a run that was refused, which has none. */
  node: TreeNodeView | null
  /** The newest run of the session; null for the root, which nobody spawned. */
  run: TreeRunView | RefusedRunView | null
  /** How many of its runs came before that one. */
  earlier: number
  hasChildren: boolean
  isFolded: boolean
}

type Below = { level: number; position: number } & ({ node: TreeNodeView } | { refused: RefusedRunView })

/** The rows in the order of the tree, without what is below a folded one. */
export function treeRows(tree: SessionTreeView, folded: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = []
  const left: Below[] = [{ node: tree.root, level: 0, position: 0 }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { level } = next
    if ('refused' in next) {
      const run = next.refused
      rows.push({ key: run.runId, level, node: null, run, earlier: 0, hasChildren: false, isFolded: false })
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
      earlier: Math.max(0, node.runs.length - 1),
      hasChildren: below.length > 0 || node.childrenCut,
    })
    if (!isFolded) left.push(...below.sort((one, other) => one.position - other.position).reverse())
  }
  return rows
}

const createdAt = (run: Pick<TreeRunView, 'stages'> | undefined): number => run?.stages[0]?.position ?? 0
