#!/bin/bash
set -eu
git push origin main
