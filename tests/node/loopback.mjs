// Preloaded into servers that would listen on every interface: in tests they listen on 127.0.0.1 only.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
  return typeof port === "object" ? listen.call(this, port, ...rest) : listen.call(this, port, "127.0.0.1", ...rest);
};
