import cp = require("child_process");
import type { Request, Response } from "express";

export const handler = (req: Request, res: Response): void => {
  cp.execSync(req.body.command as string);
};
