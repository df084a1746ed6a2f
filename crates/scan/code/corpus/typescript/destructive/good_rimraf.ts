import { rmSync } from "fs";

export const clean = (): void => rmSync("out", { recursive: true });
