// `npm start`: runs `tranche sandbox` by bin/tranche, which knows the V8 flags. npm on Windows has
// no POSIX shell, so there the command line runs in this process, without the flags.
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));

if (process.platform === 'win32') {
  const { runCli } = await import('../src/cli/main.ts');
  process.exit(await runCli(['sandbox'], process));
}
process.execve('/bin/sh', ['sh', at('tranche'), 'sandbox'], process.env);
