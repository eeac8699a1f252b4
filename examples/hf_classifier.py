"""A classifier of Hugging Face's, trained by 12 clients and saved for `from_pretrained`; nothing is downloaded."""

from itertools import product

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from asyncfl_lite import Config, Task, run

nouns, verbs = ("film", "book", "song", "play", "dish", "game"), ("was", "seemed", "felt", "really was")
words = ("fine", "great", "lovely", "superb", "awful", "boring", "dull", "weak")  # the last four are negative
texts = [f"the {noun} {verb} {word}" for noun, verb, word in product(nouns, verbs, words)]
labels = [int(words.index(text.split()[-1]) < 4) for text in texts]
fitted = Tokenizer(models.WordLevel(unk_token="[UNK]"))
fitted.pre_tokenizer = pre_tokenizers.Whitespace()
fitted.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=fitted, pad_token="[PAD]", unk_token="[UNK]")
ids = tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]

sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
model = BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), num_labels=2, **sizes))
config = Config(clients=12, concurrency=6, partition="iid", rounds=30, client_optimizer="adamw", client_lr=0.003)
result = run(config, task=Task.from_tensors(ids[:-64], labels[:-64], ids[-64:], labels[-64:]), model=model)
print(result)
result.model().save_pretrained("runs/reviews"), tokenizer.save_pretrained("runs/reviews")
