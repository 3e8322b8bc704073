# The image of image/image.yaml on a public base, for those who have a container engine; `make image` needs none. What goes
# in is listed there, and a test compares. Base images are named by digest: they change when somebody changes them here.
# To put modules of your own on top, start from the finished image: docs/guides/building.md.

FROM golang:1.26-bookworm@sha256:116d58cbd88c1297624acc6e967a060012422bacf9930927e23fb719189c6f36 AS go

FROM rust:1.95-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS build
COPY --from=go /usr/local/go /usr/local/go
# The compiler of the base is the one of rust-toolchain.toml; its other components are not needed here.
ENV PATH=/usr/local/go/bin:$PATH \
    RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /source
COPY . .
RUN make operator \
    && cargo run --locked --package image -- programs --to /programs \
    && install target/dist/addon-operator /programs/addon-operator

FROM debian:trixie-slim@sha256:d7e12182ce18b85b93007c1dedf31f2d29e01ccf3182cc4017c709b6259bc132
# Not pinned, unlike those of image.yaml: the mirror that an engine reaches keeps no old versions.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        base-files \
        bash \
        ca-certificates \
        coreutils \
        dash \
        diffutils \
        findutils \
        grep \
        gzip \
        hostname \
        jq \
        libc-bin \
        libgcc-s1 \
        mawk \
        sed \
        tar \
        tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 65532 operator \
    && useradd --uid 65532 --gid 65532 --home-dir /tmp --no-create-home --shell /bin/bash operator \
    && mkdir /hooks /modules \
    && ln -s addon-operator /shell-operator \
    && ln -s /addon-operator /usr/local/bin/addon-operator \
    && ln -s /shell-operator /usr/local/bin/shell-operator \
    && ln -s frameworks/shell/shell_lib.sh /shell_lib.sh \
    && ln -s frameworks /framework
COPY --from=build /programs/helm /usr/local/bin/helm
COPY --from=build /programs/kubectl /usr/local/bin/kubectl
COPY --from=build /programs/addon-operator /addon-operator
COPY LICENSE /usr/share/doc/addon-operator/LICENSE
COPY frameworks/shell /frameworks/shell
COPY modules /shipped-modules
COPY global-hooks /global-hooks
LABEL org.opencontainers.image.title="addon-operator" \
      org.opencontainers.image.description="Keeps a Kubernetes cluster's add-ons as they should be" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV HOME=/tmp \
    LANG=C.UTF-8 \
    MODULES_DIR=/modules:/shipped-modules \
    GLOBAL_HOOKS_DIR=/global-hooks \
    SHELL_OPERATOR_HOOKS_DIR=/hooks \
    FRAMEWORK_DIR=/frameworks/shell \
    DEBUG_UNIX_SOCKET=/tmp/debug.socket
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/addon-operator"]
