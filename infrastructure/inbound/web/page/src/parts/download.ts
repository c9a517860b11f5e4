// Saving rows as a file: CSV for spreadsheets, JSON for programs.

/** The files that the page offers. Names are fixed: nothing from a record is in them. */
export type FileName = 'runs' | 'events' | 'tree' | 'changes' | 'announcements' | 'what-if' | 'transcript' | 'prompt' | 'configuration' | 'context'

export interface CsvColumn<Row> {
  name: string
  valueOf: (row: Row) => string | number | boolean | null | undefined
}

/** A spreadsheet reads a cell that begins so as a formula, also in full width and after blanks. */
const FORMULA = /^[\s\u0000-\u001f]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/u
// Spreadsheets read a file without it in the encoding of the machine.
const BYTE_ORDER_MARK = '\ufeff'

function cell(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'string') return String(value)
  return `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`
}

/** Return rows as CSV (RFC 4180). Texts that a spreadsheet would calculate begin with an apostrophe. */
export function csv<Row>(rows: readonly Row[], columns: readonly CsvColumn<Row>[]): string {
  const lines = [columns.map((column) => cell(column.name)), ...rows.map((row) => columns.map((column) => cell(column.valueOf(row))))]
  return lines.map((cells) => `${cells.join(',')}\r\n`).join('')
}

export function downloadCsv<Row>(name: FileName, rows: readonly Row[], columns: readonly CsvColumn<Row>[]): void {
  save(`spawnlog-${name}.csv`, 'text/csv;charset=utf-8', BYTE_ORDER_MARK + csv(rows, columns))
}

export function downloadJson(name: FileName, value: unknown): void {
  save(`spawnlog-${name}.json`, 'application/json', `${JSON.stringify(value, null, 2)}\n`)
}

export function downloadText(name: FileName, text: string): void {
  save(`spawnlog-${name}.txt`, 'text/plain;charset=utf-8', text)
}

function save(fileName: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = fileName
  link.click()
  URL.revokeObjectURL(url)
}
