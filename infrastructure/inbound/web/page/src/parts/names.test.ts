import { expect, test } from 'vitest'

import { humanName, ruleName, ruleTopic } from './names'

test.each([
  ['agent:summer:subagent:15845153-8148-4b0a-9f7e-0123456789ab', 'summer', '15845153'],
  ['agent:main:main', 'main', ''], ['agent:main:customer-7', 'main', 'customer-7'], ['agent:main:subagent:main', 'main', ''],
  ['agent:main:telegram:direct:42', 'main', 'telegram:direct:42'], ['global', 'global', ''], ['agent:main', 'agent:main', ''], ['', '', ''],
])('%s is %s %s', (key, agent, detail) => expect(humanName(key)).toEqual({ agent, detail }))

test('a rule has a name for its refusal and one for what it checks; that of a newer server has its words', () => {
  expect([ruleName('allow_agents'), ruleTopic('allow_agents')]).toEqual(['agent not allowed', 'agent allowed'])
  expect([ruleName('context_scripts'), ruleTopic('context_scripts')]).toEqual(['context scripts', 'context scripts'])
  expect([ruleName('moon_phase'), ruleTopic('constructor')]).toEqual(['moon phase', 'constructor'])
})
