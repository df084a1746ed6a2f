#!/bin/bash
set -eu
git config --global core.hooksPath /tmp/hooks
