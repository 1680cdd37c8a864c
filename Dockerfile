# emceepee over HTTP, from this checkout. Only what has a hash in deploy/ is installed.
FROM python:3.13-slim AS build
WORKDIR /src
COPY deploy/build.txt deploy/run.txt deploy/
RUN pip install --no-cache-dir --no-deps --require-hashes -r deploy/build.txt
RUN python -m venv /opt/emceepee && /opt/emceepee/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r deploy/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m hatchling build -t wheel -d dist && /opt/emceepee/bin/python -m pip install --no-cache-dir --no-deps dist/*.whl

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/emceepee --create-home emceepee && install -d /etc/emceepee
COPY --from=build /opt/emceepee /opt/emceepee
ENV PATH=/opt/emceepee/bin:$PATH HOME=/var/lib/emceepee XDG_CONFIG_HOME=/etc XDG_STATE_HOME=/var/lib
USER emceepee
WORKDIR /var/lib/emceepee
VOLUME /var/lib/emceepee
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["python", "-I", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/healthz')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["emceepee"]
CMD ["serve", "--host", "0.0.0.0"]
