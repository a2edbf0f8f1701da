framework_test(torch_labels test_labels.py TIMEOUT 900)
