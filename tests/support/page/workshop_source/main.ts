import { mount } from 'svelte'

import '../src/style.css'
import Workshop from './Workshop.svelte'

mount(Workshop, { target: document.getElementById('page')! })
