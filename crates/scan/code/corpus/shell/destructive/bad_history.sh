#!/bin/bash
set -eu
git push -f origin main
