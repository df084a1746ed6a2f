#!/bin/bash
set -eu
git config --global init.defaultBranch main
