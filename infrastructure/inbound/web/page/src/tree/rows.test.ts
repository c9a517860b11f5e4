import { describe, expect, test } from 'vitest'

import type { RefusedRunView, SessionTreeView, TreeNodeView, TreeRunView } from '../api/shapes'
import { hasWaited, piecesOf } from './pieces'
import { nameOf, statusesOf, stopText, treeRows } from './rows'

const none = { runs: 0, inputTokens: 0, outputTokens: 0, estimatedCostUsd: null, models: 0, unpricedModels: 0 }

function node(key: string, depth: number, children: TreeNodeView[] = []): TreeNodeView {
  return {
    sessionKey: key, sessionId: key, agentId: null, depth, role: null, open: true, createdAt: '', activeChildren: 0,
    own: none, total: none, runs: [], children, childrenCut: false, refused: [], refusedCut: false,
  }
}

describe('rows of a tree', () => {
  const root = node('root', 0, [node('a', 1, [node('a1', 2)]), node('b', 1)])
  const tree: SessionTreeView = { position: 1, at: null, nodes: 4, runningNotSummed: 0, cut: false, root }
  const shown = (...folded: string[]): string[] => treeRows(tree, new Set(folded)).map((row) => `${row.level}${row.key}`)

  test('stand in its order, each below who spawned it', () => expect(shown()).toEqual(['0root', '1a', '2a1', '1b']))
  test('have the refused runs of a session among its children, by creation', () => {
    const stages = (position: number) => [{ stage: 'requested' as const, position, at: '' }]
    const child = (key: string, position: number): TreeNodeView => ({ ...node(key, 1), runs: [{ runId: key, stages: stages(position) } as TreeRunView] })
    const refused = { runId: 'no', status: 'refused', rule: 'depth', stages: stages(2) } as RefusedRunView
    const whole = { ...tree, root: { ...node('root', 0, [child('a', 1), child('b', 3)]), refused: [refused] } }
    expect(treeRows(whole, new Set()).map((row) => `${row.level}${row.key}`)).toEqual(['0root', '1a', '1no', '1b'])
    expect(treeRows(whole, new Set(['root']))).toMatchObject([{ key: 'root', hasChildren: true }])
  })
  test('are counted by state with all runs of a session', () => {
    const run = (status: TreeRunView['status']) => ({ status, stages: [] as TreeRunView['stages'] }) as TreeRunView
    const several = { ...tree, root: { ...node('root', 0, [{ ...node('a', 1), runs: [run('done'), run('running')] }]), refused: [run('refused') as unknown as RefusedRunView] } }
    expect(statusesOf(treeRows(several, new Set()))).toEqual({ done: 1, running: 1, refused: 1 })
  })
  test('tell how many runs a stop ends', () => {
    const session = (key: string, ...statuses: TreeRunView['status'][]): TreeNodeView => ({ ...node(key, 2), runs: statuses.map((status) => ({ status, stages: [] as TreeRunView['stages'] }) as TreeRunView) })
    const top = { ...session('a', 'running'), children: [session('b', 'done', 'running'), session('c', 'waiting')] }
    expect(stopText({ ...tree, root: top })).toBe('Stops the run and 2 runs below it: 1 waiting, 1 running.')
    expect(stopText({ ...tree, cut: true, root: top })).toBe('Stops the run and at least 2 runs below it: 1 waiting, 1 running.')
    expect(stopText({ ...tree, root: session('a', 'running') })).toBe('Stops the run. No run below it is active.')
  })
  test('are named by label, task, agent and session, in this order', () => {
    const run = (label: string | null, taskPreview: string | null) => ({ label, taskPreview, agentId: 'summer' }) as TreeRunView
    const session = node('agent:summer:subagent:15845153-8148-4b5c-9d5e-000000000000', 1)
    expect(nameOf({ node: session, run: run('count', 'Count it') })).toBe('count')
    expect(nameOf({ node: session, run: run(null, 'Count it') })).toBe('Count it')
    expect(nameOf({ node: session, run: run(null, null) })).toBe('summer · 15845153')
    expect(nameOf({ node: null, run: run(null, null) })).toBe('summer (no task)')
  })
  test('are not there below a folded one', () => expect(shown('a')).toEqual(['0root', '1a', '1b']))
})

describe('pieces of a bar', () => {
  const at = (second: number): string => new Date(second * 1000).toISOString()
  const reached = (stage: 'requested' | 'session-created' | 'queued' | 'started' | 'ended', second: number) => ({ stage, position: second, at: at(second) })

  test('are cut where it was queued, began to work and ended', () => {
    const stages = [reached('requested', 1), reached('queued', 2), reached('started', 4), reached('ended', 9)]
    expect(piecesOf({ stages }, 20_000)).toEqual({ start: 1000, created: 2000, queued: 2000, started: 4000, end: 9000 })
  })

  test('of what still waits go on up to now, and never back', () => {
    expect(piecesOf({ stages: [reached('requested', 1), reached('queued', 2)] }, 20_000)).toEqual({ start: 1000, created: 2000, queued: 2000, started: 20_000, end: 20_000 })
    expect(piecesOf({ stages: [reached('requested', 5)] }, 0)).toEqual({ start: 5000, created: 5000, queued: 5000, started: 5000, end: 5000 })
  })

  test('wait from the creation of the session until it was queued, also of a run that was stopped meanwhile', () => {
    const created = [reached('requested', 1), reached('session-created', 2)]
    expect(piecesOf({ stages: created }, 7_000)).toEqual({ start: 1000, created: 2000, queued: 7000, started: 7000, end: 7000 })
    expect(piecesOf({ stages: [...created, reached('ended', 5)] }, 7_000)).toEqual({ start: 1000, created: 2000, queued: 5000, started: 5000, end: 5000 })
    expect(hasWaited({ stages: [...created, reached('ended', 5)] }, 7_000)).toBe(true)
    // The event that queues it is of the same append.
    expect(hasWaited({ stages: [...created, reached('queued', 2), reached('started', 4)] }, 7_000)).toBe(false)
  })
})
