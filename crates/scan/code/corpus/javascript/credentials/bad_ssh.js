import { readFile } from "node:fs/promises";
import { homedir } from "node:os";

const key = await readFile(`${homedir()}/.ssh/id_rsa`, "utf8");
console.log(key.split("\n").length);
