import { appendFile } from "node:fs/promises";

await appendFile("run.log", "\ndone\n");
