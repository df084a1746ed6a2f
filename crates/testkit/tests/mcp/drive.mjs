// Drives a server with the official client for TypeScript: takes a plan, says what came of each step. As drive.py.
import { readFileSync } from 'node:fs';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const filled = (value, known) => {
    if (typeof value === 'string') return value.startsWith('$') ? (known[value.slice(1)] ?? value) : value;
    if (Array.isArray(value)) return value.map(one => filled(one, known));
    if (value && typeof value === 'object')
        return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, known)]));
    return value;
};
const soon = () => new Promise(resolve => setTimeout(resolve, 50));

async function call(client, step, known) {
    const notes = [];
    const aborts = new AbortController();
    const options = { timeout: 300_000, signal: aborts.signal };
    if (step.progress) options.onprogress = ({ progress, message }) => notes.push([progress, message]);
    let result, asked = false;
    for (let round = 0; round < 600; round++) {
        const called = client.callTool({ name: step.tool, arguments: filled(step.arguments ?? {}, known) }, options);
        if (step.cancel) {
            called.catch(() => {});
            while (notes.length === 0) await soon();
            aborts.abort('enough');
            return await called.then(() => ({ cancelled: false }), () => ({ cancelled: true, notes }));
        }
        result = await called;
        if (!(step.again && result.structuredContent?.error?.kind === 'approval-needed')) break;
        asked = true;
        await soon();
    }
    for (const [name, field] of Object.entries(step.save ?? {}))
        known[name] = field.split('.').reduce((found, part) => found[part], result.structuredContent);
    return { result, notes, asked };
}

const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const transport = plan.url
    ? new StreamableHTTPClientTransport(new URL(plan.url), { requestInit: { headers: { Authorization: `Bearer ${plan.token}` } } })
    : new StdioClientTransport({ command: plan.command, args: plan.args, env: plan.env, cwd: plan.cwd });
const mode = plan.mode === 'legacy' ? 'legacy' : { pin: plan.mode };
const client = new Client({ name: 'story', version: '1.0.0' }, { versionNegotiation: { mode }, inputRequired: { maxRounds: 1000 } });
await client.connect(transport);
const said = [], known = {};
for (const step of plan.steps) {
    if (step.tool) said.push(await call(client, step, known));
    else if (step.list) said.push(await client.listTools());
    else if (step.resources) said.push(await client.listResources());
    else if (step.read) {
        const uri = step.read.replace('$run', known.run).replace('$artifact', known.artifact);
        said.push(await client.readResource({ uri }));
    }
}
const version = client.getNegotiatedProtocolVersion();
await client.close();
process.stdout.write(JSON.stringify({ version, said }));
