/** What a file seems to be, so that its reader is told where it belongs. */
export type FileKind = { tool: 'toolkit' | 'sbatch' | 'act' | 'amlt'; words: string } | null;

export function foreignKind(name: string, text: string): FileKind {
  if (/^\s*#SBATCH\b/m.test(text)) return { tool: 'sbatch', words: 'a batch script of Slurm' };
  if (name.endsWith('.json') || /^\s*\{\s*"(?:cluster|storage|experiment|io)"/.test(text)) {
    return { tool: 'toolkit', words: "a submission of MSRA Intern's Toolkit" };
  }
  if (/^\s*(?:azure_blob_config_file|config_param|experiment_name|aml_config|datastores?):/m.test(text)) {
    return { tool: 'act', words: 'a file of ACT' };
  }
  if (/^target:\s*$/m.test(text) && /^jobs:\s*$/m.test(text)) return { tool: 'amlt', words: 'a file of Amulet' };
  return null;
}

export const TOOLS = [
  { tool: 'toolkit', words: "MSRA Intern's Toolkit: a submission as JSON" },
  { tool: 'sbatch', words: 'Slurm: a batch script' },
  { tool: 'act', words: 'ACT: a file of aux_data/aml' },
  { tool: 'amlt', words: 'Amulet: its YAML' },
  { tool: 'qd', words: 'quickdetection' },
] as const;
