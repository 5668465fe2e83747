import { SvelteSet } from 'svelte/reactivity';
import { CallFailed, isAborted } from '../api/failure';
import { call } from '../api/transport';
import type { DryRun, JobChecked, JobProblem } from '../api/types';
import { store, stored } from '../shell/stored';
import { renamed, written, type How, type Value } from './job/change';
import { JobDocument, type Path } from './job/document';
import { fieldName, placed, type Placed } from './job/problems';
import type { SubmitOptions } from './job/same-command';
import { findSecrets, withoutSecrets, type FoundSecret } from './job/secrets';

/** Where the text came from, to show what was changed since. */
export type Loaded = { words: string; text: string };
export type Mirror = { place: string; ignore: string };

type Draft = { text: string; options: SubmitOptions; mirror: Mirror; loaded: Loaded | null };

const PAUSE_MS = 600;
const NO_OPTIONS: SubmitOptions = { after: '', in_place: false, any_size: false };

/** The job that is being written. Its YAML text is all there is; fields read and write parts of it. */
export class JobForm {
  text = $state('');
  options = $state<SubmitOptions>({ ...NO_OPTIONS });
  mirror = $state<Mirror>({ place: '', ignore: '' });
  loaded = $state.raw<Loaded | null>(null);

  isChecking = $state(false);
  checkError = $state.raw<unknown>(null);
  #checked = $state.raw<{ text: string; answer: JobChecked } | null>(null);
  #refused = $state.raw<JobProblem[]>([]);
  #fields = new SvelteSet<string>();
  #running: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  readonly document = $derived(new JobDocument(this.text));
  /** Its values stay shown while the text is no YAML for a moment. */
  readonly #sound = $derived.by(() => (this.document.isSound ? (this.#last = this.document) : this.#last));
  #last = new JobDocument('');

  readonly isEmpty = $derived(this.text.trim() === '');
  readonly secrets: FoundSecret[] = $derived(findSecrets(this.text));
  readonly problems: Placed[] = $derived.by(() => {
    const syntax: JobProblem[] = this.document.problems.map((problem) => ({ ...problem, key: null, hints: [] }));
    const told = this.document.isSound ? [...this.#refused, ...(this.#checked?.answer.problems ?? [])] : syntax;
    return this.isEmpty && this.#refused.length === 0 ? [] : placed(told, this.document, this.#fields);
  });

  constructor() {
    const draft = stored<Partial<Draft>>('submit-draft', {});
    this.text = typeof draft.text === 'string' ? draft.text : '';
    this.options = { ...NO_OPTIONS, ...draft.options };
    this.mirror = { place: '', ignore: '', ...draft.mirror };
    this.loaded = draft.loaded ?? null;
  }

  /** The plan of the text as it is now, if it was checked and can run. */
  get plan(): DryRun | null {
    return this.#checked?.text === this.text ? this.#checked.answer.plan : null;
  }

  get isChecked(): boolean {
    return this.#checked?.text === this.text;
  }

  read(...path: Path): string {
    return this.#sound.read(path);
  }

  list(...path: Path): string[] {
    return this.#sound.readList(path);
  }

  names(...path: Path): string[] {
    return this.#sound.names(path);
  }

  get shown(): JobDocument {
    return this.#sound;
  }

  set(path: Path, value: Value | undefined, how?: How): void {
    this.text = written(this.text, path, value, how);
  }

  rename(path: Path, name: string): void {
    this.text = renamed(this.text, path, name);
  }

  load(loaded: Loaded): void {
    this.text = loaded.text;
    this.loaded = loaded;
    this.options = { ...NO_OPTIONS };
  }

  /** A field that is shown takes the problems of its key. */
  shows(path: Path): () => void {
    const name = fieldName(path);
    this.#fields.add(name);
    return () => this.#fields.delete(name);
  }

  problemsOf(path: Path): Placed[] {
    const name = fieldName(path);
    return this.problems.filter(({ field }) => field === name);
  }

  /** Keeps the draft in this browser, without what is secret. */
  keep(): void {
    const { options, mirror, loaded } = this;
    const clean = loaded && { words: loaded.words, text: withoutSecrets(loaded.text) };
    store('submit-draft', { text: withoutSecrets(this.text), options, mirror, loaded: clean });
  }

  /** Checks after a short pause, so that nobody is told off in the middle of a word. */
  checkSoon(): void {
    this.#refused = [];
    clearTimeout(this.#timer);
    this.#running?.abort();
    if (this.isEmpty || !this.document.isSound) {
      this.isChecking = false;
      return;
    }
    this.isChecking = true;
    this.#timer = setTimeout(() => void this.check(), PAUSE_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#running?.abort();
  }

  /** Whether the program would take it. Only the program itself knows. */
  async check(): Promise<boolean> {
    clearTimeout(this.#timer);
    this.#running?.abort();
    const mine = new AbortController();
    this.#running = mine;
    const { text } = this;
    this.isChecking = true;
    try {
      const answer = await call<JobChecked>('job.check', { input: text }, { signal: mine.signal });
      this.#checked = { text, answer };
      this.checkError = null;
      return answer.problems.length === 0;
    } catch (error) {
      if (!isAborted(error)) this.checkError = error;
      return false;
    } finally {
      if (this.#running === mine) this.isChecking = false;
    }
  }

  /** Puts a refusal beside the field that it names. Whether it names one. */
  refused(error: unknown): boolean {
    if (!(error instanceof CallFailed) || !error.failure.key) return false;
    const { key, message, hints } = error.failure;
    this.#refused = [{ key, line: null, column: null, message, hints }];
    return true;
  }
}
