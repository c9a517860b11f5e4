import { expect, test } from 'vitest'

import { humanName } from './names'

test.each([
  ['agent:summer:subagent:15845153-8148-4b0a-9f7e-0123456789ab', 'summer', '15845153'],
  ['agent:main:main', 'main', ''], ['agent:main:customer-7', 'main', 'customer-7'], ['agent:main:subagent:main', 'main', ''],
  ['agent:main:telegram:direct:42', 'main', 'telegram:direct:42'], ['global', 'global', ''], ['agent:main', 'agent:main', ''], ['', '', ''],
])('%s is %s %s', (key, agent, detail) => expect(humanName(key)).toEqual({ agent, detail }))
