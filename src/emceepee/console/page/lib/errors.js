// The message of any thrown value.

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
