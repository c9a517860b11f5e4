// The models of a run: the one that it was given, and those that its child reports.

/** Return the reported models, each once; none if they are just the given one, with or without its provider. */
export function usedModels(reported: (string | null)[], given: string): string[] {
  const names = [...new Set(reported.filter((name): name is string => name !== null && name !== ''))]
  const isGiven = (name: string): boolean => name === given || given.endsWith(`/${name}`)
  return names.every(isGiven) ? [] : names
}
