import { expect, test } from 'vitest'

import { firstSpawn } from './first_spawn'

const URL = 'http://127.0.0.1:8700'

test('an administrator spawns from the session main', () => {
  const { command, request } = firstSpawn(URL, { kind: 'admin', patterns: ['*'], session: null })
  expect(command.join(' ')).toBe(`spawnlog --url ${URL} spawn Say hello --label first`)
  expect(request).toBe(
    `curl -sS ${URL}/v1/spawns -H "Authorization: Bearer $SPAWNLOG_TOKEN" -H 'Content-Type: application/json'`
    + ` -d '{"requester":{"sessionKey":"main"},"task":"Say hello","label":"first"}'`,
  )
})

test('a token of one session spawns from it', () => {
  const { command, request } = firstSpawn(URL, { kind: 'token', patterns: ['agent:a:*', 'agent:b:one'], session: null })
  expect(command.slice(-2)).toEqual(['--requester', 'agent:b:one'])
  expect(request).toContain('"sessionKey":"agent:b:one"')
})

test('without authentication the request has no token', () => {
  expect(firstSpawn(URL, { kind: 'anybody', patterns: ['*'], session: null }).request).not.toContain('Authorization')
})
