import { describe, expect, test } from 'vitest'

import { filtersOfQuery, isEmpty, parseQuery, printQuery, queryOfFilters, questionOf, repeatedFilters, toggled, type RunQuery } from './run_query'

const NOW = Date.parse('2026-03-02T12:00:00Z')
const CONTEXT = { now: NOW, timeZone: 'UTC', head: 99 }
const query = (values: RunQuery['values'], words = ''): RunQuery => ({ values, words })

describe('a typed query', () => {
  test.each<[string, RunQuery]>([
    ['', query({})],
    ['  ', query({})],
    ['lighthouse  keeper', query({}, 'lighthouse keeper')],
    ['label:customer-7', query({ label: ['customer-7'] })],
    ['label:customer-7 label:customer-12', query({ label: ['customer-7', 'customer-12'] })],
    ['label:=customer-7 label:=two label:cust', query({ 'label=': ['customer-7', 'two'], label: ['cust'] })],
    ['label:="a b" LABEL:=x', query({ 'label=': ['a b', 'x'] })],
    ['label:"=x" label:==y', query({ label: ['=x'], 'label=': ['=y'] })],
    ['label:= tide', query({}, 'tide')],
    ['label:a,b label:"c,d"', query({ label: ['a,b', 'c,d'] })],
    ['LABEL:x Status:failed', query({ label: ['x'], status: ['failed'] })],
    ['status:failed status:timeout', query({ status: ['failed', 'timeout'] })],
    ['status:failed,timeout,failed', query({ status: ['failed', 'timeout'] })],
    ['label:"a b" tide', query({ label: ['a b'] }, 'tide')],
    [String.raw`label:"say \"hi\" \\ there"`, query({ label: [String.raw`say "hi" \ there`] })],
    ['label:"not closed', query({ label: ['not closed'] })],
    ['label:a"b', query({ label: ['a"b'] })],
    ['TimeoutError: tide', query({}, 'TimeoutError: tide')],
    ['x:y http://z', query({}, 'x:y http://z')],
    ['"label:x"', query({}, 'label:x')],
    ['"two words"', query({}, 'two words')],
    ['label: agent:', query({})],
    ['label:"" tide', query({}, 'tide')],
    ['tree:agent:main:main', query({ tree: ['agent:main:main'] })],
    ['since:"yesterday 18:00" until:2h', query({ since: ['yesterday 18:00'], until: ['2h'] })],
    ['constructor:x __proto__:y', query({}, 'constructor:x __proto__:y')],
  ])('%s', (text, expected) => {
    const read = parseQuery(text)
    expect(read.query).toEqual(expected)
    expect(read.problems).toEqual([])
    expect(parseQuery(printQuery(expected)).query).toEqual(expected)
    expect(queryOfFilters(filtersOfQuery(expected))).toEqual(expected)
  })

  test('says that a token was given twice', () => {
    const { query: read, problems } = parseQuery('rule:depth rule:batch')
    expect(read).toEqual(query({ rule: ['batch'] }))
    expect(problems).toEqual(['Use rule: only once. The last one is used.'])
  })

  test('survives any text', () => {
    for (const text of ['"', '\\', '":', 'label:"\\', '‮label:x', ':', '::', 'a:"b c"d', '"a"b']) {
      const { query: read } = parseQuery(text)
      expect(parseQuery(printQuery(read)).query).toEqual(read)
    }
  })
})

describe('the address', () => {
  test('has the names of the API', () => {
    expect(filtersOfQuery(parseQuery('words label:a agent:b,c ended-since:today cause:"no tide"').query)).toEqual([
      ['labelPrefix', 'a'], ['agentId', 'b'], ['agentId', 'c'], ['cause', 'no tide'], ['endedSince', 'today'], ['q', 'words'],
    ])
  })

  test('has whole labels', () => {
    expect(queryOfFilters([['label', 'late'], ['part', 'x']])).toEqual(query({ 'label=': ['late'] }))
  })

  test('that names several rules says that the last one is used', () => {
    const filters: [string, string][] = [['rule', 'depth'], ['rule', 'batch'], ['status', 'failed'], ['status', 'refused']]
    expect(queryOfFilters(filters)).toEqual(query({ rule: ['batch'], status: ['failed', 'refused'] }))
    expect(repeatedFilters(filters)).toEqual(['Use rule: only once. The last one is used.'])
  })
})

describe('the question', () => {
  test('has moments as the server reads them', () => {
    const { query: read } = parseQuery('since:today until:18:00 status:failed')
    const { parameters, options, problems } = questionOf(read, CONTEXT)
    expect(problems).toEqual([])
    expect(parameters).toEqual({ status: ['failed'], since: '2026-03-02T00:00:00Z', until: '2026-03-01T18:00:00Z' })
    expect(options).toEqual(['--status', 'failed', '--since', '2026-03-02T00:00:00Z', '--until', '2026-03-01T18:00:00Z'])
  })

  test('has each beginning of a label', () => {
    const { parameters, options, problems } = questionOf(parseQuery('label:customer-7 label:customer-12').query, CONTEXT)
    expect(problems).toEqual([])
    expect(parameters).toEqual({ labelPrefix: ['customer-7', 'customer-12'] })
    expect(options).toEqual(['--label-prefix', 'customer-7', '--label-prefix', 'customer-12'])
  })

  test('has whole labels beside beginnings', () => {
    const { parameters, options } = questionOf(parseQuery('label:=customer-7 label:cust').query, CONTEXT)
    expect(parameters).toEqual({ label: ['customer-7'], labelPrefix: ['cust'] })
    expect(options).toEqual(['--label-prefix', 'cust', '--label', 'customer-7'])
  })

  test.each([
    ['foo:bar tide', ['“foo:” is no filter, so it is looked for as a word.']],
    ['agnt:a agnt:b', ['“agnt:” is no filter, so it is looked for as a word.']],
    ['TimeoutError: http://z x:y 12:30', []],
  ])('names what is no filter: %s', (text, problems) => {
    expect(questionOf(parseQuery(text).query, CONTEXT).problems).toEqual(problems)
  })

  test('counts back from now, or from the moment that is shown', () => {
    const { query: read } = parseQuery('since:2h')
    expect(questionOf(read, CONTEXT).parameters).toEqual({ since: '-2h' })
    expect(questionOf(read, CONTEXT, false).parameters).toEqual({ since: '2026-03-02T10:00:00.000Z' })
  })

  test.each([
    ['status:broken', '“broken” is not a status. Use preparing, waiting, queued, running, done, failed, timeout, stopped, unknown or refused.'],
    ['rule:children', '“children” is not a rule. Use active_children.'],
    ['rule:nothing', '“nothing” is not a rule. Use one that is suggested.'],
    ['since:soon', '"soon" is not a time I understand. Try 2026-03-01 18:00, 20 min ago, or a position such as 120.'],
    ['a b c d e f g h i', 'Only the first 8 words and 200 characters are searched for.'],
  ])('leaves out what is none: %s', (text, problem) => {
    const { parameters, problems } = questionOf(parseQuery(text).query, CONTEXT)
    expect(problems).toEqual([problem])
    expect(Object.keys(parameters)).toEqual(text.startsWith('a b') ? ['q'] : [])
  })
})

test('a value is added, and taken away again', () => {
  const one = toggled(query({}), 'status', 'failed')
  expect(toggled(one, 'status', 'done')).toEqual(query({ status: ['failed', 'done'] }))
  expect(isEmpty(toggled(one, 'status', 'failed'))).toBe(true)
  expect(toggled(query({ rule: ['depth'] }), 'rule', 'batch')).toEqual(query({ rule: ['batch'] }))
})
