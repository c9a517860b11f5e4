// What can be done about a refused spawn: the setting that its rule compared, and the next step.

import type { RuleView } from '../api/shapes'
import type { Rule } from '../parts/names'
import { settingOf, valueAt, type Setting } from '../what_if/candidate'

type Refusal = Pick<RuleView, 'rule' | 'compared'>

interface Way {
  /** The key in the configuration, if one decides; without the place of an agent. */
  setting?: string
  /** The next step, as a sentence. */
  step: string
}

const SUBAGENTS = 'agents.defaults.subagents'
const WAYS: Record<Rule, Way> = {
  agent_id: { step: 'Correct the agent id, and spawn it again.' },
  mode: { step: 'Request mode session with a thread, or mode run without one.' },
  depth: { setting: `${SUBAGENTS}.maxSpawnDepth`, step: 'Let a run at a lower depth spawn it, or raise the setting.' },
  tools: { setting: 'tools.subagents.tools', step: 'Permit sessions_spawn in the tool policy of the requester.' },
  active_children: { setting: `${SUBAGENTS}.maxChildrenPerAgent`, step: 'Wait until a child ends or stop one, then spawn it again; or raise the setting.' },
  require_agent_id: { setting: `${SUBAGENTS}.requireAgentId`, step: 'Name an agent in the spawn, or set it to false.' },
  allow_agents: { setting: `${SUBAGENTS}.allowAgents`, step: 'Add the agent to the setting, or spawn an allowed one.' },
  shared_context: { step: 'Share fewer or shorter values; erased values cannot be shared again.' },
  dependency_unknown: { step: 'Correct the name in dependsOn: no run of the tree has it.' },
  dependency_ambiguous: { step: 'Name the dependency by its run id: several sessions have this label.' },
  reference_unknown: { step: 'Correct the name of the run whose result is shared.' },
  reference_ambiguous: { step: 'Name the run whose result is shared by its id.' },
  dependency_cycle: { step: 'Leave out the dependency on an ancestor, or on a run that waits for one.' },
  dependency_failed: { step: 'Spawn the dependency again, then this run with the new one; or let it wait for any end.' },
  agent_unknown: { setting: 'agents.list', step: 'Add the agent to the setting, or correct the name.' },
  sandbox: { setting: 'agents.defaults.sandbox.mode', step: 'Give the agent a runtime with providesSandbox, or lower the mode.' },
  thinking: { setting: `${SUBAGENTS}.thinking`, step: 'Use a level such as low, medium or high.' },
  runtime: { setting: 'agents.list[].runtime', step: 'Give the agent a runtime of type command, model, external or scripted.' },
  credentials: { step: 'Set the variable in the environment of the server, and start it again.' },
  workspace: { setting: 'spawnlog.workspaceRoots', step: 'Make the folder usable by the server, or request another one.' },
  thread_binding: { step: 'Ask who runs the hook that binds threads, or spawn without a thread.' },
  context_fork: { step: 'Spawn it with an isolated context, or fork a session that still has its transcript.' },
  attachments: { setting: 'tools.sessions_spawn.attachments', step: 'Enable attachments, or attach fewer or smaller files.' },
  context_engine: { step: 'The hook prepareSubagentSpawn refused: ask who runs it.' },
  stopped: { step: 'It was stopped before its session was created: spawn it again if it is still wanted.' },
  erased: { step: 'Its texts were erased: spawn it as a new run with its task.' },
  batch: { step: 'Another task of its batch could not be prepared: correct that one, then spawn the batch again.' },
}

export interface WayOut {
  step: string
  /** The key in the configuration; null if no setting decides. */
  setting: string | null
  /** The value in force at the refusal; undefined if the rule did not record it. */
  value: unknown
  /** The least change with which the rule would not refuse, and its name; null if there is none to propose. */
  change: (Setting & { name: string }) | null
}

const CHILDREN_MAX = 20
const DEPTH_MAX = 5

/** Return what can be done about a refusal. `pointer` is where its setting is in the configuration
 * by which it was refused; null if that is not known. */
export function wayOut(refusal: Refusal, pointer: string | null): WayOut | null {
  const way = Object.hasOwn(WAYS, refusal.rule) ? WAYS[refusal.rule as Rule] : undefined
  if (way === undefined) return null
  const [value, wanted] = valuesOf(refusal)
  return {
    step: way.step,
    setting: pointer !== null ? keyOf(pointer)
      : ((refusal.compared?.['from'] === 'agent' ? way.setting?.replace('agents.defaults', 'agents.list[]') : way.setting) ?? null),
    value,
    change: pointer === null || wanted === undefined ? null : {
      pointer, value: wanted, name: refusal.rule === 'allow_agents' ? `${String(refusal.compared?.['targetAgentId'])} is allowed` : JSON.stringify(wanted),
    },
  }
}

/** Return the value in force and the one that would permit the spawn; undefined for none. */
function valuesOf({ rule, compared }: Refusal): [unknown, unknown] {
  const number = (name: string): number => (typeof compared?.[name] === 'number' ? compared[name] : NaN)
  const upTo = (wanted: number, most: number): number | undefined => (wanted <= most ? wanted : undefined)
  if (rule === 'active_children') return [compared?.['maxChildren'], upTo(number('activeChildren') + (Number.isNaN(number('places')) ? 1 : number('places')), CHILDREN_MAX)]
  if (rule === 'depth') return [compared?.['maxSpawnDepth'], upTo(number('callerDepth') + 1, DEPTH_MAX)]
  if (rule === 'require_agent_id') return [compared?.['requireAgentId'], false]
  if (rule === 'allow_agents' && compared !== null) {
    const listed = Array.isArray(compared['allowAgents']) ? compared['allowAgents'] : []
    const target = compared['targetAgentId']
    return [compared['allowAgents'] ?? undefined, typeof target === 'string' ? [...listed, target] : undefined]
  }
  return [undefined, undefined]
}

/** Return the value that the setting of a refusal has in `content`, for the requester's agent if that has its own; undefined for none. */
export function valueInForce(refusal: Refusal, content: unknown): unknown {
  const places = ['agent', 'defaults'].map((from) => settingOf({ ...refusal, compared: { ...refusal.compared, from } }, content))
  return places.map((pointer) => (pointer === null ? undefined : valueAt(content, pointer))).find((value) => value !== undefined)
}

/** Return `agents.list[1].subagents.allowAgents` for its JSON pointer. */
function keyOf(pointer: string): string {
  return pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((name, index) => (/^\d+$/.test(name) ? `[${name}]` : index === 0 ? name : `.${name}`)).join('')
}
