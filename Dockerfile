# Debian 13 (trixie), because uWebSockets.js links its binaries for Node 22 and later against glibc 2.38: Debian 12 has
# 2.36, Alpine has musl. On Debian 12 only Node 20 would do.
FROM node:24-trixie-slim AS build
WORKDIR /app

# First what rarely changes, so that a change in the sources does not install everything again.
COPY package.json package-lock.json .npmrc ./
RUN npm ci

COPY tsconfig.json ./
COPY src src
RUN npm run build

# uWebSockets.js brings binaries for every platform and Node version, some 290 MB. Which of them is ours only the image
# knows: it is built for more than one architecture. A version without a binary fails here and not at the first start.
RUN npm prune --omit=dev \
 && cd node_modules/uWebSockets.js \
 && ours="$(node -p '`uws_${process.platform}_${process.arch}_${process.versions.modules}.node`')" \
 && test -f "$ours" \
 && find . -name '*.node' ! -name "$ours" -delete \
 && node -e 'require("uWebSockets.js")'

FROM node:24-trixie-slim
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json LICENSE ./

# In a container the loopback address cannot be reached from outside, and the container's network is the boundary that
# keeps strangers out. So the broker listens on all addresses here without asking anybody to authenticate: publish the
# port only where everyone who reaches it may publish and subscribe.
ENV NODE_ENV=production \
    GAPLESS_HOST=0.0.0.0 \
    GAPLESS_INSECURE=true

# The image's own unprivileged user, by number so that runAsNonRoot can check it. It writes to no place but a data
# directory, where one is asked for.
RUN mkdir /data && chown 1000:1000 /data
USER 1000:1000
EXPOSE 8080

# Alive, not ready: a broker that drains still answers, and must not be replaced before it is done.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.GAPLESS_PORT ?? 8080}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]

# Drains for GAPLESS_DRAIN_MS, 5 s unless told otherwise, which fits into the 10 s that `docker stop` waits.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "dist/main.js"]
CMD ["serve"]
