import { createContext } from 'svelte';
import type { Facts } from './facts.svelte';
import type { JobForm } from './job-form.svelte';

/** What every field of the form works on. */
export const [form, setForm] = createContext<JobForm>();
export const [facts, setFacts] = createContext<Facts>();
