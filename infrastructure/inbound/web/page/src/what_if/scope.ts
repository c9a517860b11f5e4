// Which decisions a question is about, and its answer, each in a sentence.

import type { TotalsView, WhatIfBody } from '../api/shapes'
import { withAgo } from '../moment/moment_text'
import { nameOfSession } from '../parts/names'
import { count, counted, shortId, visible } from '../parts/text'
import { CHANGED } from './decided'

type Filter = NonNullable<WhatIfBody['filter']>

/** `All runs of main · rush since 2026-11-28 00:00 are tested.`, or `will be tested` if that is not asked yet. */
export function testedText(filter: Filter, from: string, to: string, isAsked: boolean): string {
  if (filter.runId) return `Only run ${shortId(filter.runId)} ${isAsked ? 'is' : 'will be'} tested.`
  return `All runs${whose(filter)}${from === '' ? '' : ` since ${visible(withAgo(from))}`}${to === '' ? '' : ` until ${visible(withAgo(to))}`} ${isAsked ? 'are' : 'will be'} tested.`
}

/**
 * `Yes: all 3 refused runs of main · rush would be allowed. Nothing else changes.`
 *
 * @param refused The number of these runs that were refused; null if it is not known.
 */
export function verdictSentence({ byVerdict, decisions }: TotalsView, filter: Filter, refused: number | null): string {
  const number = (verdict: string): number => byVerdict[verdict] ?? 0
  const [allowed, newlyRefused, unknown] = [number('newly-allowed'), number('newly-refused'), number('not-replayable')]
  const others = CHANGED.reduce((sum, verdict) => sum + number(verdict), 0) - allowed - newlyRefused - unknown
  const said: string[] = []
  const runs = (of: number): string => `${of === 1 ? 'the refused run' : `all ${count(of)} refused runs`}${whose(filter)}`
  if (refused !== null && allowed > 0 && allowed === refused) said.push(`Yes: ${runs(refused)} would be allowed.`)
  else if (allowed > 0) said.push(`${refused === null ? '' : `${count(allowed)} of `}${counted(refused ?? allowed, 'refused run')}${whose(filter)} would be allowed.`)
  else if (refused !== null && refused > 0 && unknown === 0) said.push(`No: ${runs(refused)} would still be refused.`)
  if (newlyRefused > 0) {
    const ofAll = refused === null || said.length > 0 ? null : decisions - refused - unknown
    said.push(`${ofAll === null ? '' : `${count(newlyRefused)} of `}${counted(ofAll ?? newlyRefused, 'allowed run')} would be refused.`)
  }
  if (others > 0) said.push(said.length > 0 ? `${counted(others, 'other decision')} would differ.` : `${count(others)} of ${counted(decisions, 'decision')} would differ.`)
  if (unknown > 0) said.push(`${counted(unknown, 'decision')} ${unknown === 1 ? 'lacks' : 'lack'} a recorded fact.`)
  if (said.length === 0) return `Nothing changes: ${decisions === 1 ? 'the decision' : `all ${counted(decisions, 'decision')}`} would be the same.`
  if (newlyRefused + others === 0 && decisions > Math.max(allowed, refused ?? 0) + unknown) said.push('Nothing else changes.')
  return said.join(' ')
}

/** ` of main · rush in the tree of main for agent coder`, or nothing if all runs are meant. */
function whose({ requester, tree, agentId }: Filter): string {
  return [
    requester ? ` of ${visible(nameOfSession(requester))}` : '',
    tree ? ` in the tree of ${visible(nameOfSession(tree))}` : '',
    agentId?.length ? ` for agent ${agentId.map(visible).join(' or ')}` : '',
  ].join('')
}
