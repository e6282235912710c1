/** How many requests a window allows. The window begins with its first request. */
export type Limit = { max_requests: number; window_seconds: number };
