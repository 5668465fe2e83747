/** What this browser remembers. A webview or a strict browser may keep nothing. */
export function stored<T>(name: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`towline-${name}`);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

export function store(name: string, value: unknown): void {
  try {
    localStorage.setItem(`towline-${name}`, JSON.stringify(value));
  } catch {
    // It is then forgotten with the page.
  }
}
