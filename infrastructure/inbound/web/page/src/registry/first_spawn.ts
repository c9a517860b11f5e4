// The command and the request that make the first spawn on a server.

import type { CallerView } from '../api/shapes'
import { quoted } from '../parts/text'

const TASK = 'Say hello'
const LABEL = 'first'

export interface FirstSpawn {
  command: string[]
  /** A line for a POSIX shell that calls curl. */
  request: string
}

/** The spawn that the caller may make: by the session `main`, or by the first session of its token. */
export function firstSpawn(url: string, caller: Pick<CallerView, 'kind' | 'patterns' | 'session'> | null): FirstSpawn {
  const patterns = caller?.patterns ?? ['*']
  const own = caller?.session ?? patterns.find((pattern) => !pattern.includes('*'))
  const requester = patterns.includes('*') || own === undefined ? 'main' : own
  const body = JSON.stringify({ requester: { sessionKey: requester }, task: TASK, label: LABEL })
  return {
    command: ['spawnlog', '--url', url, 'spawn', TASK, '--label', LABEL, ...(requester === 'main' ? [] : ['--requester', requester])],
    request: [
      'curl -sS', quoted(`${url}/v1/spawns`),
      ...(caller?.kind === 'anybody' ? [] : ['-H "Authorization: Bearer $SPAWNLOG_TOKEN"']),
      '-H', quoted('Content-Type: application/json'), '-d', quoted(body),
    ].join(' '),
  }
}
