"""Who speaks to emceepee's endpoints without a process or a socket."""
