// Shows a prompt to the user, and tells the system about the answer.
export const one = 1;
