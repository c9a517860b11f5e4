// Columns of the list of runs: all of them, the shown ones, and the columns of an exported file.

import type { RunSummary } from '../api/shapes'
import type { CsvColumn } from '../parts/download'
import { tookMs } from '../parts/took'
import type { Column } from '../parts/WindowedTable.svelte'

export interface RunColumn {
  id: 'status' | 'agent' | 'label' | 'task' | 'requester' | 'elapsed' | 'tokens' | 'cost' | 'rule' | 'created' | 'ended' | 'run'
  name: string
  width: string
  order?: 'descending'
  /** True if it is shown by default. */
  isDefault: boolean
}

/** The longest status is whole at every size. */
const STATUS_WIDTH = '6.5rem'

export const COLUMNS: readonly RunColumn[] = [
  { id: 'status', name: 'Status', width: STATUS_WIDTH, isDefault: true },
  { id: 'agent', name: 'Agent', width: 'minmax(6rem, 9rem)', isDefault: true },
  { id: 'label', name: 'Label', width: 'minmax(9rem, 11rem)', isDefault: true },
  { id: 'task', name: 'Task or error', width: 'minmax(12rem, 1fr)', isDefault: true },
  { id: 'requester', name: 'Requested by', width: 'minmax(8rem, 12rem)', isDefault: false },
  { id: 'elapsed', name: 'Elapsed', width: '6rem', isDefault: true },
  { id: 'tokens', name: 'Tokens', width: '5rem', isDefault: true },
  { id: 'cost', name: 'Cost', width: '5rem', isDefault: true },
  { id: 'rule', name: 'Rule', width: 'minmax(6rem, 12rem)', isDefault: false },
  { id: 'created', name: 'Created', width: '11rem', order: 'descending', isDefault: true },
  { id: 'ended', name: 'Ended', width: '11rem', isDefault: false },
  { id: 'run', name: 'Run', width: '5.5rem', isDefault: false },
]

/** Return the columns. Live, times under a day are short, and the task has their room. */
export function columnsAt(isLive: boolean): readonly RunColumn[] {
  const live: Partial<Record<RunColumn['id'], string>> = { task: 'minmax(16rem, 1fr)', created: 'minmax(7rem, 11rem)', ended: 'minmax(7rem, 11rem)' }
  return isLive ? COLUMNS.map((column) => ({ ...column, width: live[column.id] ?? column.width })) : COLUMNS
}

type ShortColumn = Pick<RunColumn, 'id' | 'name' | 'width'> & Pick<Column, 'isBelow' | 'widthAbove'>

/** The default columns on a window that has no room for all of them: what a reader decides by. On a phone
 * the task or the error is on a second line. */
export const SHORT_COLUMNS: readonly ShortColumn[] = [
  { id: 'status', name: 'Status', width: STATUS_WIDTH },
  { id: 'label', name: 'Label or agent', width: 'minmax(7rem, 10rem)', widthAbove: 'minmax(5rem, 1fr)' },
  { id: 'task', name: 'Task or error', width: 'minmax(11rem, 1fr)', isBelow: true },
  { id: 'elapsed', name: 'Elapsed', width: '5.5rem', isBelow: true },
  { id: 'cost', name: 'Cost', width: '4.5rem' },
]

export const DEFAULT_COLUMNS = columnsText(COLUMNS.filter((column) => column.isDefault).map((column) => column.id))

/** Write the chosen columns for the address: in the order of the table, with commas. */
export function columnsText(ids: Iterable<string>): string {
  const chosen = new Set(ids)
  return COLUMNS.filter((column) => chosen.has(column.id)).map((column) => column.id).join(',')
}

/** Parse the chosen columns of the address; the default if none is known. */
export function readColumns(text: string | null): Set<RunColumn['id']> {
  const chosen = columnsText((text ?? '').split(','))
  return new Set((chosen || DEFAULT_COLUMNS).split(',') as RunColumn['id'][])
}

/** Return the run time in milliseconds; null if the run did not start. */
export function elapsedMs(run: RunSummary, now: number): number | null {
  return run.endedAt === null ? tookMs(run.stages, now) : run.runtimeMs
}

export const FILE_COLUMNS: CsvColumn<RunSummary>[] = [
  { name: 'runId', valueOf: (run) => run.runId },
  { name: 'status', valueOf: (run) => run.status },
  { name: 'agent', valueOf: (run) => run.agentId ?? run.requestedAgentId },
  { name: 'label', valueOf: (run) => run.label },
  { name: 'task', valueOf: (run) => run.taskPreview },
  { name: 'cause', valueOf: (run) => run.errorCause },
  { name: 'error', valueOf: (run) => run.error },
  { name: 'rule', valueOf: (run) => run.rule },
  { name: 'requester', valueOf: (run) => run.requesterSessionKey },
  { name: 'createdAt', valueOf: (run) => run.createdAt },
  { name: 'startedAt', valueOf: (run) => run.startedAt },
  { name: 'endedAt', valueOf: (run) => run.endedAt },
  { name: 'elapsedMs', valueOf: (run) => run.runtimeMs },
  { name: 'inputTokens', valueOf: (run) => run.usage?.inputTokens },
  { name: 'outputTokens', valueOf: (run) => run.usage?.outputTokens },
  { name: 'estimatedCostUsd', valueOf: (run) => run.estimatedCostUsd },
  { name: 'model', valueOf: (run) => run.model },
]
