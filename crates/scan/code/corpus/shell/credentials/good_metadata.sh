#!/bin/bash
set -eu
curl -s http://localhost:8080/health
