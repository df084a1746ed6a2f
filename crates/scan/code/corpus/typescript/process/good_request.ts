import type { Request, Response } from "express";

export const handler = (req: Request, res: Response): void => {
  res.json({ command: req.body.command as string });
};
