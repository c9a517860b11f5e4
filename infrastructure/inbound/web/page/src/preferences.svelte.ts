// Settings of this browser: color theme, time zone, and range of the time bar.

import { LOCAL, UTC } from './moment/zone'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]
export const ZONES = ['local', 'utc'] as const
export type Zone = (typeof ZONES)[number]

/** How much of the log the time bar shows, counted back from its last event. */
export const RANGES = ['all', '7d', '24h', '1h'] as const
export type Range = (typeof RANGES)[number]

const THEME_KEY = 'spawnlog.theme'
const ZONE_KEY = 'spawnlog.zone'
const RANGE_KEY = 'spawnlog.range'

class Preferences {
  #theme = $state<Theme>(stored(THEME_KEY, THEMES))
  #zone = $state<Zone>(stored(ZONE_KEY, ZONES))
  #range = $state<Range>(stored(RANGE_KEY, RANGES))
  #isSystemDark = $state(false)

  constructor() {
    this.#applyTheme()
    const system = matchMedia('(prefers-color-scheme: dark)')
    this.#isSystemDark = system.matches
    system.addEventListener('change', () => (this.#isSystemDark = system.matches))
    // Another tab of this browser has changed a setting.
    addEventListener('storage', (event) => {
      if (event.key === THEME_KEY || event.key === null) this.#theme = stored(THEME_KEY, THEMES)
      if (event.key === ZONE_KEY || event.key === null) this.#zone = stored(ZONE_KEY, ZONES)
      this.#applyTheme()
    })
  }

  get theme(): Theme {
    return this.#theme
  }

  set theme(theme: Theme) {
    this.#theme = theme
    localStorage.setItem(THEME_KEY, theme)
    this.#applyTheme()
  }

  /** Whether the page is dark now. A canvas that reads it is drawn again in the other colors. */
  get isDark(): boolean {
    return this.#theme === 'system' ? this.#isSystemDark : this.#theme === 'dark'
  }

  get zone(): Zone {
    return this.#zone
  }

  set zone(zone: Zone) {
    this.#zone = zone
    localStorage.setItem(ZONE_KEY, zone)
  }

  get range(): Range {
    return this.#range
  }

  set range(range: Range) {
    this.#range = range
    localStorage.setItem(RANGE_KEY, range)
  }

  /** The time zone in which times are shown and read. */
  get timeZone(): string {
    return this.#zone === 'utc' ? UTC : LOCAL
  }

  #applyTheme(): void {
    const root = document.documentElement
    if (this.#theme === 'system') root.removeAttribute('data-theme')
    else root.setAttribute('data-theme', this.#theme)
  }
}

/** Return the stored choice, or the first one if none or an unknown one is stored. */
function stored<Choice extends string>(key: string, choices: readonly [Choice, ...Choice[]]): Choice {
  const text = localStorage.getItem(key)
  return choices.find((choice) => choice === text) ?? choices[0]
}

export const preferences = new Preferences()
