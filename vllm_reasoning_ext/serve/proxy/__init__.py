"""The reverse proxy: response translation in front of any server."""
