"""The API surfaces, sans-IO: response bytes in, response bytes out. Nothing here knows a socket."""
