import { untrack } from 'svelte';

export type Binding = { keys: string; does: string; run: (event: KeyboardEvent) => void };

const SEQUENCE_MS = 1200;

/** The keys of the page. A binding is one key, or two after each other: `g r`. */
class Keys {
  bindings = $state.raw<Binding[]>([]);
  #first = '';
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Returns what ends it; the latest binding of a key wins. */
  bind(bindings: Binding[]): () => void {
    // Bound by effects, which are not to run again when others bind.
    this.bindings = [...untrack(() => this.bindings), ...bindings];
    return () => {
      this.bindings = untrack(() => this.bindings).filter((binding) => !bindings.includes(binding));
    };
  }

  pressed(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') leaveSearch(event.target);
    if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
    const typed = this.#first ? `${this.#first} ${event.key}` : event.key;
    clearTimeout(this.#timer);
    this.#first = '';
    const found = this.bindings.findLast(({ keys }) => keys === typed);
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (this.bindings.some(({ keys }) => keys.startsWith(`${event.key} `))) {
      this.#first = event.key;
      this.#timer = setTimeout(() => (this.#first = ''), SEQUENCE_MS);
    }
  }
}

/** The first Escape empties a field to search in, the next one leaves it. */
function leaveSearch(target: EventTarget | null): void {
  if (target instanceof HTMLInputElement && target.type === 'search' && target.value === '') target.blur();
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio'].includes(target.type);
  return target.isContentEditable || ['TEXTAREA', 'SELECT'].includes(target.tagName);
}

export const keys = new Keys();
