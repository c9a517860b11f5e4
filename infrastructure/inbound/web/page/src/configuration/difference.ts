// The differences of two JSON values, place by place.

import { isLongNumber } from '../api/json'

export interface Difference {
  /** A JSON pointer (RFC 6901): in the right value, or in the left one for what is gone. */
  pointer: string
  kind: 'added' | 'removed' | 'changed' | 'moved'
  before?: unknown
  after?: unknown
}

export const DIFFERENCES_MAX = 500
/** The members that may identify an item of a list: the first one that every item has. */
const IDENTITIES = ['id', 'key', 'name']

export interface DifferenceOptions {
  most?: number
  /** Whether a list of plain values that differs is one difference, and not one of each item. */
  areListsWhole?: boolean
}

/** The differences, at most `most`, and whether there are more. Members in another order are none. */
export function differences(left: unknown, right: unknown, { most = DIFFERENCES_MAX, areListsWhole = false }: DifferenceOptions = {}): { items: Difference[]; isCut: boolean } {
  const found = new Found(most, areListsWhole)
  compare('', left, right, found)
  return { items: found.items.slice(0, most), isCut: found.isCut }
}

class Found {
  readonly items: Difference[] = []

  constructor(readonly most: number, readonly areListsWhole: boolean) {}

  get isCut(): boolean {
    return this.items.length > this.most
  }

  push(difference: Difference): void {
    this.items.push(difference)
  }
}

function compare(pointer: string, left: unknown, right: unknown, found: Found): void {
  if (found.isCut) return
  if (Array.isArray(left) && Array.isArray(right)) {
    if (!found.areListsWhole || ![...left, ...right].every(isPlain)) ofLists(pointer, left, right, found)
    else if (!isSame(left, right)) found.push({ pointer, kind: 'changed', before: left, after: right })
  } else if (isObject(left) && isObject(right)) ofObjects(pointer, left, right, found)
  else if (!isSame(left, right)) found.push({ pointer, kind: 'changed', before: left, after: right })
}

type Json = Record<string, unknown>

function ofObjects(pointer: string, left: Json, right: Json, found: Found): void {
  for (const [name, before] of Object.entries(left)) {
    const place = `${pointer}/${escaped(name)}`
    if (Object.hasOwn(right, name)) compare(place, before, right[name], found)
    else found.push({ pointer: place, kind: 'removed', before })
  }
  for (const [name, after] of Object.entries(right)) {
    if (!Object.hasOwn(left, name)) found.push({ pointer: `${pointer}/${escaped(name)}`, kind: 'added', after })
  }
}

function ofLists(pointer: string, left: unknown[], right: unknown[], found: Found): void {
  const identity = identityOf(left, right)
  if (identity !== null) ofKnown(pointer, identity, left as Json[], right as Json[], found)
  else ofUnknown(pointer, left, right, found)
}

/** Items with a name of their own are compared with the one of the same name. */
function ofKnown(pointer: string, identity: string, left: Json[], right: Json[], found: Found): void {
  const places = new Map(right.map((item, place) => [item[identity], place]))
  const names = new Set(left.map((item) => item[identity]))
  left.forEach((item, place) => {
    const other = places.get(item[identity])
    if (other === undefined) found.push({ pointer: `${pointer}/${place}`, kind: 'removed', before: item })
    else compare(`${pointer}/${other}`, item, right[other], found)
  })
  right.forEach((item, place) => {
    if (!names.has(item[identity])) found.push({ pointer: `${pointer}/${place}`, kind: 'added', after: item })
  })
  const before = left.map((item) => item[identity]).filter((name) => places.has(name))
  const after = right.map((item) => item[identity]).filter((name) => names.has(name))
  if (!isSame(before, after)) found.push({ pointer, kind: 'moved', before, after })
}

/** What both have at the beginning and at the end stays; what is between is compared in pairs. */
function ofUnknown(pointer: string, left: unknown[], right: unknown[], found: Found): void {
  const least = Math.min(left.length, right.length)
  let start = 0
  while (start < least && isSame(left[start], right[start])) start += 1
  let end = 0
  while (end < least - start && isSame(left[left.length - 1 - end], right[right.length - 1 - end])) end += 1
  const pairs = least - start - end
  for (let at = start; at < start + pairs; at += 1) compare(`${pointer}/${at}`, left[at], right[at], found)
  for (let at = start + pairs; at < left.length - end; at += 1) found.push({ pointer: `${pointer}/${at}`, kind: 'removed', before: left[at] })
  for (let at = start + pairs; at < right.length - end; at += 1) found.push({ pointer: `${pointer}/${at}`, kind: 'added', after: right[at] })
}

function identityOf(left: unknown[], right: unknown[]): string | null {
  const items = [...left, ...right]
  const isUnique = (list: unknown[], name: string): boolean =>
    new Set(list.map((item) => (item as Json)[name])).size === list.length
  for (const name of IDENTITIES) {
    if (items.length === 0 || !items.every((item) => isObject(item) && typeof item[name] === 'string')) continue
    if (isUnique(left, name) && isUnique(right, name)) return name
  }
  return null
}

function isSame(left: unknown, right: unknown): boolean {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, place) => isSame(item, right[place]))
  }
  if (isObject(left) && isObject(right)) {
    const names = Object.keys(left)
    return names.length === Object.keys(right).length &&
      names.every((name) => Object.hasOwn(right, name) && isSame(left[name], right[name]))
  }
  if (isLongNumber(left) && isLongNumber(right)) return JSON.stringify(left) === JSON.stringify(right)
  return left === right
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== 'object' || isLongNumber(value)
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLongNumber(value)
}

function escaped(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
