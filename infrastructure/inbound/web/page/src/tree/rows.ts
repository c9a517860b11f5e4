// A tree of sessions as rows: a session, its runs, and below it those that it spawned.

import type { SessionTreeView, TreeNodeView, TreeRunView } from '../api/shapes'

export interface TreeRow {
  key: string
  level: number
  node: TreeNodeView
  /** The newest run of the session; null for the root, which nobody spawned. */
  run: TreeRunView | null
  /** How many of its runs came before that one. */
  earlier: number
  hasChildren: boolean
  isFolded: boolean
}

/** The rows in the order of the tree, without what is below a folded one. */
export function treeRows(tree: SessionTreeView, folded: ReadonlySet<string>): TreeRow[] {
  const rows: TreeRow[] = []
  const left: { node: TreeNodeView; level: number }[] = [{ node: tree.root, level: 0 }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { node, level } = next
    const key = node.sessionId ?? node.runs[0]?.runId ?? String(rows.length)
    const isFolded = folded.has(key)
    rows.push({
      key, level, node, isFolded,
      run: node.runs.at(-1) ?? null,
      earlier: Math.max(0, node.runs.length - 1),
      hasChildren: node.children.length > 0 || node.childrenCut,
    })
    if (!isFolded) for (const child of [...node.children].reverse()) left.push({ node: child, level: level + 1 })
  }
  return rows
}
